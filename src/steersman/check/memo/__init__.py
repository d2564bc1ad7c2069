"""What controllers did, kept on disk between checks: `code` tells when it still holds, `steps` is its form as JSON,
`disk` keeps it."""
