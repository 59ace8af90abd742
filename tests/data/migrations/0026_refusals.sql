-- Rows as they are written under this schema.

UPDATE gateway_tokens SET refused = 'requests' WHERE turn = 1;
