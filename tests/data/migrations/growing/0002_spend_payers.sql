-- Who pays for a request beside the installation: the repository and the person who asked; 0 where nobody knows.

ALTER TABLE gateway_tokens ADD COLUMN repo_id BIGINT NOT NULL DEFAULT 0;
ALTER TABLE gateway_tokens ADD COLUMN user_id BIGINT NOT NULL DEFAULT 0;
UPDATE gateway_tokens SET
    repo_id = COALESCE((SELECT threads.repo_id FROM sessions JOIN threads ON threads.id = sessions.thread_id
                        WHERE sessions.id = gateway_tokens.session_id), 0),
    user_id = COALESCE((SELECT turns.requester_id FROM turns
                        WHERE turns.session_id = gateway_tokens.session_id AND turns.n = gateway_tokens.turn), 0);

ALTER TABLE spend ADD COLUMN repo_id BIGINT NOT NULL DEFAULT 0;
ALTER TABLE spend ADD COLUMN user_id BIGINT NOT NULL DEFAULT 0;
UPDATE spend SET
    repo_id = COALESCE((SELECT threads.repo_id FROM sessions JOIN threads ON threads.id = sessions.thread_id
                        WHERE sessions.id = spend.session_id), 0),
    user_id = COALESCE((SELECT turns.requester_id FROM turns
                        WHERE turns.session_id = spend.session_id AND turns.n = spend.turn), 0);

-- Every request asks for the sums of a day and a month: the index answers them without the rows.
DROP INDEX spend_installation;
CREATE INDEX spend_installation ON spend (installation_id, at, state, cost_usd);
CREATE INDEX spend_repo ON spend (repo_id, at, state, cost_usd);
CREATE INDEX spend_user ON spend (user_id, at, state, cost_usd);
