CREATE SCHEMA IF NOT EXISTS dbjobs;

-- What this database holds: one row. A program whose schema number is below oldest must not use it, and one whose
-- number is above version has migrations to apply first. Migrators take turns by the lock on this row.
CREATE TABLE IF NOT EXISTS dbjobs.installation (
  id          integer NOT NULL PRIMARY KEY CHECK (id = 1),
  version     integer NOT NULL,                                -- the newest migration that was applied
  oldest      integer NOT NULL,                                -- the oldest schema number that a program may have been built for
  repeatable  text,                                            -- digest of the texts of the views and routines that were brought in last; NULL: none were
  instance    text,                                            -- which database this is; a tick told otherwise claims nothing
  owners      boolean NOT NULL DEFAULT false,                         -- each job belongs to a login, and an ordinary login reaches its own only (migrate --owners)
  migrated_at timestamptz NOT NULL
);
