-- What a table refuses, in the words of its check.
CREATE FUNCTION dbjobs.refuse_check(subject text, of_table text, named text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('%s: a value is not allowed: %s', subject,
      (SELECT pg_get_constraintdef(c.oid) FROM pg_constraint c WHERE c.conname = named AND c.conrelid = to_regclass('dbjobs.' || quote_ident(of_table)))),
    HINT = 'Give one that this check allows.';
END
$$
;

COMMENT ON FUNCTION dbjobs.refuse_check(text, text, text) IS 'for the other routines: says which check a row broke'
;
