CREATE FUNCTION dbjobs.instant(subject text, field text, text text) RETURNS timestamptz
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO' AS $$
BEGIN
  IF text ~* '^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)? ?(Z|[+-][0-9]{2}(:?[0-9]{2})?)$' THEN
    BEGIN
      RETURN text::timestamptz;
    EXCEPTION WHEN data_exception THEN -- such as the 31st of June
    END;
  END IF;
  RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('%s: %s: %s is no instant', subject, field, quote_literal(coalesce(text, ''))),
    HINT = 'Give date, time and offset, such as 2026-12-01T08:00:00Z or 2026-12-01T08:00:00+01:00.';
END
$$
;

COMMENT ON FUNCTION dbjobs.instant(text, text, text) IS 'for the other routines: reads an instant'
;
