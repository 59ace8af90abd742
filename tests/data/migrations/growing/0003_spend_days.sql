-- What each payer has spent a day, kept in the transaction that settles a request: the sums of a day and of a month
-- are judged before every request, and a month of a busy installation is a hundred thousand rows.

CREATE TABLE spend_days (
    payer    TEXT NOT NULL CHECK (payer IN ('installation_id', 'repo_id', 'user_id')),
    number   BIGINT NOT NULL,
    day      BIGINT NOT NULL,                  -- of UTC, since 1970
    cost_usd DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (payer, number, day)
);
INSERT INTO spend_days (payer, number, day, cost_usd)
SELECT 'installation_id', installation_id, CAST(at AS BIGINT) / 86400, SUM(cost_usd) FROM spend
WHERE state <> 'reserved' AND installation_id <> 0 GROUP BY installation_id, CAST(at AS BIGINT) / 86400;
INSERT INTO spend_days (payer, number, day, cost_usd)
SELECT 'repo_id', repo_id, CAST(at AS BIGINT) / 86400, SUM(cost_usd) FROM spend
WHERE state <> 'reserved' AND repo_id <> 0 GROUP BY repo_id, CAST(at AS BIGINT) / 86400;
INSERT INTO spend_days (payer, number, day, cost_usd)
SELECT 'user_id', user_id, CAST(at AS BIGINT) / 86400, SUM(cost_usd) FROM spend
WHERE state <> 'reserved' AND user_id <> 0 GROUP BY user_id, CAST(at AS BIGINT) / 86400;

-- The rows themselves are asked for by payer only while they are under way, when they are few.
DROP INDEX spend_installation;
DROP INDEX spend_repo;
DROP INDEX spend_user;
CREATE INDEX spend_at ON spend (at);
CREATE INDEX spend_open ON spend (at) WHERE state = 'reserved';
