// The worker of pg-boss: `start URL` makes its tables, `prepare URL` them and the queue, `work URL` works what is in the
// queue, and ends.
import pg from "pg";
import { PgBoss } from "pg-boss";

const [what, connectionString] = process.argv.slice(2);
const boss = new PgBoss(connectionString);
boss.on("error", (error) => {
  throw error;
});
await boss.start();
if (what === "prepare") {
  await boss.createQueue("report");
} else if (what === "work") {
  const pool = new pg.Pool({ connectionString });
  await boss.work("report", { batchSize: 50, pollingIntervalSeconds: 0.5 }, async (jobs) => {
    for (const { data } of jobs) await pool.query("INSERT INTO worked (run, at) VALUES ($1, $2)", [data.run, data.at]);
  });
  const open = "SELECT count(*) AS n FROM pgboss.job WHERE name = 'report' AND state < 'completed'";
  while (Number((await pool.query(open)).rows[0].n) > 0) await new Promise((ready) => setTimeout(ready, 50));
  await pool.end();
}
await boss.stop();
