-- Rows belong to nobody again, for `dbjobs migrate --owners=false`.

UPDATE dbjobs_installation SET owners = false WHERE owners;
