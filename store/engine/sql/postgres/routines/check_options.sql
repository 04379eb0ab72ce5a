CREATE FUNCTION dbjobs.check_options(subject text, options jsonb, known text[]) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  odd text;
BEGIN
  IF jsonb_typeof(options) <> 'object' THEN
    RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('%s: options: %s is no JSON object', subject, options), HINT = 'Give an object, such as {"retry": 2}.';
  END IF;
  SELECT k INTO odd FROM jsonb_object_keys(options) k WHERE k <> ALL (known) LIMIT 1;
  IF odd IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('%s: there is no option %s', subject, quote_literal(odd)), HINT = format('The options are %s.', array_to_string(known, ', '));
  END IF;
END
$$
;

COMMENT ON FUNCTION dbjobs.check_options(text, jsonb, text[]) IS 'for the other routines: refuses an option that there is not'
;
