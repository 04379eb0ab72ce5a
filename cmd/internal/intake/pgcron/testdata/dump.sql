--
-- PostgreSQL database dump
--

COPY cron.job (jobid, schedule, command, nodename, nodeport, database, username, active, jobname) FROM stdin;
1	30 2 * * *	VACUUM ANALYZE	localhost	5432	shop	ann	t	nightly vacuum
2	*/10 * * * *	DELETE FROM sessions\nWHERE expires < now()	localhost	5432	shop	ann	t	\N
4	30 seconds	CALL stock.refresh()	localhost	5432	stock	bob	t	stock/refresh
5	0 0 1,$ * *	CALL close_month()	db2.example.org	5432	shop	ann	f	month end
6	0 0 $ * *	CALL close_month()	localhost	5432	shop	ann	t	month end
7	0 0 1 * mon	SELECT 1	localhost	5432	shop	ann	t	either
8	0 0 32 * *	SELECT 1	localhost	5432	shop	ann	t	never
9	@daily	SELECT 1	localhost	5432	shop	ann	t	daily
\.

SELECT 1;
