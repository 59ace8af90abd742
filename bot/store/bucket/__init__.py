"""Files in a bucket of an S3-compatible service; the only importer of botocore, whose signer it uses."""
