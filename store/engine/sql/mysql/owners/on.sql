-- Rows belong to logins, for `dbjobs migrate --owners`. There is no row security: ordinary logins have no rights on tables,
-- and reach rows through views and routines of a definer, which compare the owner with the user of USER(). The rights are
-- for an administrator to give: `dbjobs migrate --print-grants user`.

UPDATE dbjobs_installation SET owners = true WHERE NOT owners;
