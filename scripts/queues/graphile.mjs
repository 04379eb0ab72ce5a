// The worker of graphile-worker: `prepare URL` makes its tables, `work URL` works what is in the queue, and ends.
import pg from "pg";
import { Logger, runMigrations, runOnce } from "graphile-worker";

const [what, connectionString] = process.argv.slice(2);
const pgPool = new pg.Pool({ connectionString });
const logger = new Logger(() => () => {});
if (what === "prepare") {
  await runMigrations({ pgPool, logger });
} else {
  const report = ({ run, at }, helpers) => helpers.query("INSERT INTO worked (run, at) VALUES ($1, $2)", [run, at]);
  await runOnce({ pgPool, logger, noHandleSignals: true, taskList: { report } });
}
await pgPool.end();
