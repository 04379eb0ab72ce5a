-- What this database holds: one row. A program whose schema number is below oldest must not use it, and one whose
-- number is above version has migrations to apply first. Migrators take turns by the lock on this row.
CREATE TABLE IF NOT EXISTS dbjobs_installation (
  id          integer NOT NULL PRIMARY KEY CHECK (id = 1),
  version     integer NOT NULL,                                -- the newest migration that was applied
  oldest      integer NOT NULL,                                -- the oldest schema number that a program may have been built for
  repeatable  varchar(190),                                            -- digest of the texts of the views and routines that were brought in last; NULL: none were
  instance    varchar(190),                                            -- which database this is; a tick told otherwise claims nothing
  owners      boolean NOT NULL DEFAULT false CHECK (owners IN (0, 1)),  -- each job belongs to a login, and an ordinary login reaches its own only (migrate --owners)
  migrated_at datetime(6) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
