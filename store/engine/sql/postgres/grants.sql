-- The least rights of each kind of login. Names replace @login, @database and @tables. A statement with @table is
-- repeated for each table. @columns are all columns of the table except the number of a row. The table installation,
-- which says what the database holds, is not one of these tables: to lock its row, a login needs UPDATE on one of its
-- columns.

-- name: admin
-- Before the first `dbjobs migrate`, by a superuser or the owner of the database. This login owns the tables.
GRANT CREATE ON DATABASE @database TO @login;

-- name: admin_owners
-- For who may give a job another owner. `dbjobs migrate --owners` makes the role, if its login may make roles; else a superuser
-- has to do so before, once a server: CREATE ROLE dbjobs_admin; CREATE ROLE dbjobs_ticker; CREATE ROLE dbjobs_reader
GRANT dbjobs_admin TO @login;

-- name: ticker
-- After each `dbjobs migrate`, by the login that migrates.
GRANT USAGE ON SCHEMA dbjobs TO @login;
GRANT SELECT, INSERT, UPDATE, DELETE ON @tables TO @login;
GRANT SELECT, UPDATE (migrated_at) ON dbjobs.installation TO @login;
GRANT SELECT ON @view TO @login;
GRANT EXECUTE ON FUNCTION dbjobs.record_attempt TO @login;

-- name: ticker_owners
-- Once, by who may grant the role.
GRANT dbjobs_ticker TO @login;

-- name: reader
-- After each `dbjobs migrate`, by the login that migrates.
GRANT USAGE ON SCHEMA dbjobs TO @login;
GRANT SELECT ON ALL TABLES IN SCHEMA dbjobs TO @login;

-- name: reader_owners
-- Once, by who may grant the role.
GRANT dbjobs_reader TO @login;

-- name: user
-- After each `dbjobs migrate --owners`, by the login that migrates. Row security lets the login reach its own rows only. The
-- numbers of rows are the server's: who could choose one would write a step, or a pause, for the job that gets it next.
GRANT USAGE ON SCHEMA dbjobs TO @login;
GRANT SELECT, DELETE ON @tables TO @login;
GRANT INSERT (@columns), UPDATE (@columns) ON @table TO @login;
GRANT SELECT, UPDATE (migrated_at) ON dbjobs.installation TO @login;
GRANT EXECUTE ON FUNCTION dbjobs.record_attempt TO @login;
-- A view shows a login the rows that it may see in the tables. Before PostgreSQL 15, its own condition does that.
GRANT SELECT ON @view TO @login;
