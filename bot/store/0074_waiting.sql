-- What nobody has taken up yet is looked through at each step of the intake: by thread, without its body.
CREATE INDEX deliveries_waiting ON deliveries (repo_id, number, received_at, guid, installation_id)
WHERE state = 'received';
