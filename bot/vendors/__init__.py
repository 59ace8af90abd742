"""Proves to Amazon and Google who we are; the only importer of botocore and of google-auth."""
