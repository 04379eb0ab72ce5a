-- The least rights of each kind of login. Names replace @login, @database and @pattern, which is the name of the
-- database where the server reads a pattern. A statement with @table is repeated for each table.

-- name: admin
-- Before the first `dbjobs migrate`. This login is the definer of views and routines, and may give a job another owner.
-- A server with partial_revokes = ON takes the name of the database as it is: leave out its backslashes there.
GRANT CREATE, CREATE VIEW, CREATE ROUTINE, ALTER ROUTINE, DROP, SELECT, INSERT, UPDATE, DELETE ON @pattern.* TO @login;

-- name: ticker
-- After each `dbjobs migrate`.
GRANT SELECT, INSERT, UPDATE, DELETE ON @database.@table TO @login;
GRANT SELECT, UPDATE (migrated_at) ON @database.dbjobs_installation TO @login;
-- With owners, a view shows this login its own jobs only.
GRANT SELECT ON @database.@view TO @login;

-- name: reader
-- After each `dbjobs migrate`.
GRANT SELECT ON @database.@table TO @login;
GRANT SELECT ON @database.dbjobs_installation TO @login;
-- With owners, a view shows this login its own jobs only.
GRANT SELECT ON @database.@view TO @login;

-- name: user
-- After each `dbjobs migrate --owners`. There is no right on a table.
GRANT EXECUTE ON @kind @database.@routine TO @login;
GRANT SELECT ON @database.@view TO @login;
