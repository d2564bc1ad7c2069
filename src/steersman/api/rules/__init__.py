"""What built-in kinds must look like, beyond their schemas: one file a group of kinds."""
