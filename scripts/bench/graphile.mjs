// The process of graphile-worker: `fill URL N` makes the jobs, `run URL N` executes them as scripts/bench/child.go says.
import { once } from "node:events";
import pg from "pg";
import { run, runMigrations, Logger } from "graphile-worker";

const [what, connectionString, jobs] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString, max: 25 });
const preset = {
  worker: {
    concurrentJobs: 24,
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  },
};
const logger = new Logger(() => () => {});
await runMigrations({ pgPool: pool, preset, logger });
if (what === "fill") {
  await pool.query("TRUNCATE graphile_worker._private_jobs");
  await pool.query(
    "SELECT graphile_worker.add_job('insert', json_build_object('job', n)) FROM generate_series(0, $1::int - 1) n", [jobs]);
} else {
  process.stdout.write("ready\n");
  await once(process.stdin, "data");
  const runner = await run({
    pgPool: pool, preset, logger, noHandleSignals: true,
    taskList: { insert: ({ job }, helpers) => helpers.query("INSERT INTO effects (job) VALUES ($1)", [job]) },
  });
  const record = new pg.Client({ connectionString }); // beside the pool, which is busy
  await record.connect();
  for (let left = 1; left > 0; ) { // a job that is done is no longer there
    left = Number((await record.query("SELECT count(*) AS n FROM graphile_worker._private_jobs")).rows[0].n);
    if (left > 0) await new Promise((ready) => setTimeout(ready, 3));
  }
  process.stdout.write("done\n");
  await runner.stop();
  await record.end();
}
await pool.end();
process.exit(0);
