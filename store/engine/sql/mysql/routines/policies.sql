-- The program writes the list.
--
-- kinds: text, name (a name), word (of the column's CHECK), number, percent, attempts, length (of time), again (the same, which
-- is written also where it is zero), flag, off (a flag of which the column has the opposite), tags, instant, hook.
CREATE PROCEDURE dbjobs_policies(OUT list longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: the keys of a job, their columns, kinds, defaults and words'
BEGIN
  SET list = '[
    ["@key", "@column", "@kind", @default, "@words"]
    ]';
END
;
