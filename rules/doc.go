// Package rules reads recurrence rules in six forms and answers when they
// fire: Next, Prev, Between and Count of a Rule. It knows time only. It holds
// no clock, opens no file and asks nobody, so that a rule means the same on
// every host; the time zone database is linked in.
//
// # Cost
//
// An answer is found near the instant it is asked about, whatever the age of
// the rule. Days are admitted a month at a time by bit masks, times of day by
// bit sets, INTERVAL by arithmetic, clock changes span by span. COUNT alone
// needs the start; where it ends is found once, when the rule is parsed, and
// Ends gives it to be stored. Each call has a step budget. A rule that never
// fires is refused when it is parsed (ErrNeverFires), and so is one of which
// the budget cannot tell (ErrUndecided).
//
// # Clock changes
//
// A rule is pinned if its frequency is a day or longer or it names hours; a
// cron text, if its hour field does not admit all 24. A pinned rule recurs on
// the wall clock of its zone. A wall time that does not exist is read with the
// offset before the gap (RFC 5545 §3.3.5), or skipped (`nonexistent: skip`).
// One that exists twice is the first (`ambiguous: first`), the last, or both.
//
// All other rules are free: they fire at every real instant at which the wall
// clock reads what their BY parts say. HOURLY, MINUTELY and SECONDLY count
// elapsed time from DTSTART: an hour stays an hour, also where the wall clock
// moves by half of one. With BYMINUTE, the hours counted begin where the wall
// clock's hour did at DTSTART. `every N` under a day and `I` count elapsed time
// and no wall clock.
//
// Two wall times that fall on one instant are one occurrence.
//
// The table says what each form does in New York from midnight to 04:00 on
// 2026-03-08, when 02:00 becomes 03:00, and on 2026-11-01, when 02:00 becomes
// 01:00; a star marks an hour's second pass. A test computes it.
//
//	rule                              | gap                                 | fold
//	30 2 * * *                        | 03:30                               | 02:30
//	30 1 * * *                        | 01:30                               | 01:30
//	0 2,3 * * *                       | 03:00                               | 02:00 03:00
//	*/30 1-2 * * *                    | 01:00 01:30 03:00 03:30             | 01:00 01:30 02:00 02:30
//	30 * * * *                        | 00:30 01:30 03:30                   | 00:30 01:30 01:30* 02:30 03:30
//	0 */2 * * *                       | 00:00 03:00                         | 00:00 02:00
//	every 1h                          | 00:00 01:00 03:00                   | 00:00 01:00 01:00* 02:00 03:00
//	every 2h                          | 01:00                               | 00:00 01:00* 03:00
//	every 1d starting 2026-01-01T02:30 | 03:30                              | 02:30
//	every 1d starting 2026-01-01T01:30 | 01:30                              | 01:30
//	D 2:30                            | 03:30                               | 02:30
//	D 30                              | 00:30 01:30 03:30                   | 00:30 01:30 01:30* 02:30 03:30
//	W 0 1:30                          | 01:30                               | 01:30
//	I 1:00                            | 00:00 01:00 03:00                   | 00:00 01:00 01:00* 02:00 03:00
//	daily at 02:30                    | 03:30                               | 02:30
//	monthly on the first sunday at 01:30 |                                  | 01:30
//	at 2026-03-08T02:30, 2026-11-01T01:30 | 03:30                           | 01:30
//	FREQ=DAILY;BYHOUR=2;BYMINUTE=30   | 03:30                               | 02:30
//	FREQ=HOURLY                       | 00:00 01:00 03:00                   | 00:00 01:00 01:00* 02:00 03:00
//	FREQ=HOURLY;BYHOUR=1,2            | 01:00 03:00                         | 01:00 02:00
//	FREQ=HOURLY;INTERVAL=2            | 00:00 03:00                         | 01:00 02:00
//	FREQ=MINUTELY;INTERVAL=40         | 00:00 00:40 01:20 03:00 03:40       | 00:20 01:00 01:40 01:20* 02:00 02:40 03:20
//	skip: 30 2 * * *                  |                                     | 02:30
//	skip: */30 1-2 * * *              | 01:00 01:30                         | 01:00 01:30 02:00 02:30
//	last: 30 1 * * *                  | 01:30                               | 01:30*
//	both: 30 1 * * *                  | 01:30                               | 01:30 01:30*
//	both: */30 1 * * *                | 01:00 01:30                         | 01:00 01:30 01:00* 01:30*
//
// # Where readings differ
//
// Implementations of RFC 5545 disagree on a few points. Here:
//
//   - DTSTART is an occurrence only if the rule admits it, except in a set
//     without RRULE, where it is the first (§3.8.5.3).
//   - YEARLY with BYWEEKNO and no BYDAY means all seven days of the week, and
//     a week belongs to the year of its fourth day; INTERVAL counts calendar
//     years. BYMONTH beside BYWEEKNO or BYYEARDAY keeps the days in both.
//   - BYSETPOS counts in whole periods, also in the first.
//   - Second 60 is read as 59.
//   - SKIP (RFC 7529) moves days that BYMONTHDAY, BYYEARDAY or DTSTART name;
//     BYDAY judges the day moved to.
//   - The calendar ends with the year 9999.
//
// In cron texts, Vixie cron is followed where others differ: day of month and
// day of week are joined by OR, but by AND where one of them begins with *.
// Lint says where a text is read otherwise elsewhere.
package rules
