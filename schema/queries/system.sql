-- Statements about the database itself.

-- COMMIT () change
COMMIT

-- PING () rows
SELECT 1

-- SCHEMA_VERSION () rows
SELECT COALESCE(MAX(version), 0) FROM migration

-- INSTALLATION_MARK () rows
SELECT mark FROM installation WHERE one = 1

-- INSTALLATION_CREATE (mark, created_at) change again
INSERT IGNORE INTO installation (one, mark, created_at) VALUES (1, ?, ?)

-- MIGRATION_ADD (version, applied_at) change again
INSERT IGNORE INTO migration (version, applied_at) VALUES (?, ?)
