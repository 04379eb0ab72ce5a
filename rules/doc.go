// Package rules reads recurrence rules in six forms and answers when they
// fire: Next, Prev, Between and Count of a Rule. It knows time only. It has no
// clock, opens no file and sends nothing, so a rule means the same on every
// host. The time zone database is linked into the program.
//
// # From a text to an answer
//
// All forms become the same Rule, and one engine answers for it:
//
//  1. Parse (rules/rules.go) asks each form whether it claims the text, and
//     lets it parse the text: rruleForm (rules/rrule.go), cronForm
//     (rules/cron.go), agentForm (rules/agent.go), intervalForm
//     (rules/interval.go), pgjobsForm (rules/pgjobs.go), onceForm
//     (rules/once.go).
//  2. The form fills in one recur (rules/recur.go) for each recurrence: the
//     parts of an RRULE of RFC 5545.
//  3. compile (rules/compile.go) turns each recur into a series
//     (rules/series.go): a grid (rules/grid.go) of wall times in a zone.
//     Rule.mustFire (rules/never.go) refuses a rule that never fires.
//  4. Rule.Next (rules/query.go) takes the earliest answer of all series and
//     dates, and leaves out what is excluded. series.walk (rules/series.go)
//     goes through the spans of the zone, grid.next (rules/grid.go) through the
//     months that dayFilter.days (rules/days.go) admits.
//
// # Holidays
//
// A Calendar (rules/calendar.go) has the days that are no working days: single
// days, days of each year, and weekdays. A rule with a calendar leaves out an
// occurrence on such a day, or moves it to the next or previous working day, at
// the same wall time: Rule.moved (rules/holiday.go). Two occurrences that fall on
// one instant are one. The days are those of the rule's zone, or of the default zone
// if the rule is kept in UTC; the days of EXDATE are always those of the rule's zone.
// An occurrence is on the day that the rule names, also where a clock change moves
// it past midnight; a window past midnight, whose times are of two dates, takes no
// calendar. Occurrences that EXDATE and EXRULE name are removed before
// anything is moved. A moved occurrence keeps the wall time that the rule names. If
// the clock of the new day leaves out or repeats that wall time, the policies for
// clock changes apply, as for any other. The canonical text of a rule contains the
// days of its calendar, so it keeps its meaning when the calendar changes.
//
// # Cost
//
// An answer is found near the instant that the caller asks about, however old the
// rule is. Bit masks select days, a month at a time; bit sets select times of
// day; INTERVAL is arithmetic; clock changes are handled span by span. Only COUNT
// needs the start: its end is found once, when the rule is parsed, and Ends
// returns it so that the caller can store it, with the release of the zone database
// by which it was found. Each call has a step budget. Parse
// refuses a rule that never fires (ErrNeverFires), and a rule for which the
// budget is too small to find out (ErrUndecided).
//
// # Clock changes
//
// A rule is pinned if its frequency is a day or longer, or if it names hours. A
// cron text is pinned if its hour field does not allow all 24 hours. A pinned
// rule recurs on the wall clock of its zone. A wall time that does not exist is
// read with the offset before the gap (RFC 5545 §3.3.5), or skipped
// (`nonexistent: skip`; an EXDATE of it removes nothing then, unless it names a
// single date). A wall time that exists twice means its first instant
// (`ambiguous: first`), the last, or both.
//
// All other rules are free: they fire at every real instant at which the wall
// clock shows what their BY parts say. HOURLY, MINUTELY and SECONDLY count
// elapsed time from DTSTART: an hour stays an hour, even if the wall clock moves
// by half an hour. With BYMINUTE, the counted hours begin where the hour of the
// wall clock began at DTSTART. `every N` with a unit below a day, and `I`, count
// elapsed time and ignore the wall clock.
//
// Two wall times that fall on one instant are one occurrence.
//
// The table shows what each form does in New York from midnight to 04:00 on
// 2026-03-08, when 02:00 becomes 03:00, and on 2026-11-01, when 02:00 becomes
// 01:00. A star marks the second pass of an hour. A test computes the table.
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
//	daily every 40m from 1:00 to 3:00 | 01:00 01:40 03:00 03:20             | 01:00 01:40 02:20 03:00
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
//     without RRULE, where it is the first (§3.8.5.3). RDATE without DTSTART and
//     RRULE has no other time than its dates.
//   - YEARLY with BYWEEKNO and no BYDAY means all seven days of the week, and
//     a week belongs to the year of its fourth day; INTERVAL counts calendar
//     years. BYMONTH beside BYWEEKNO or BYYEARDAY keeps the days in both.
//   - BYSETPOS counts in whole periods, also in the first.
//   - Second 60 is read as 59.
//   - SKIP (RFC 7529) moves days that BYMONTHDAY, BYYEARDAY or DTSTART name;
//     BYDAY judges the day moved to.
//   - The calendar ends with the year 9999.
//
// For cron texts on which implementations differ, the package follows Vixie cron:
// day of month and day of week are joined by OR, but by AND if one of them begins
// with *. Lint reports texts that other implementations read differently.
package rules
