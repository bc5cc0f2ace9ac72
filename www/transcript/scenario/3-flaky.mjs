import { vitest } from "../lib/terminal.mjs";

const TEST = `import { describe, expect, it } from "vitest";
import { FakeClock } from "../../src/dunning/clock.js";
import { reminders } from "../../src/dunning/schedule.js";

const ZONES = ["Europe/Dublin", "Europe/Berlin", "America/St_Johns", "Pacific/Auckland", "UTC"];

describe("reminders", () => {
  const at = (iso: string) => ({ clock: new FakeClock(iso) });

  it("sends three reminders after the due date", () => {
    const list = reminders({ dueOn: "2025-09-10", timeZone: "Europe/Dublin", calendar: "none", ...at("2025-09-08T09:00:00Z") });
    expect(list).toEqual([{ level: 1, on: "2025-09-17" }, { level: 2, on: "2025-10-01" }, { level: 3, on: "2025-10-15" }]);
  });

  it("leaves out reminders that are already in the past", () => {
    const list = reminders({ dueOn: "2025-09-01", timeZone: "Europe/Dublin", calendar: "none", ...at("2025-09-15T12:00:00Z") });
    expect(list.map((reminder) => reminder.level)).toEqual([2, 3]);
  });

  it("moves a reminder off a weekend", () => {
    const list = reminders({ dueOn: "2025-09-06", timeZone: "Europe/Dublin", calendar: "IE", ...at("2025-09-01T00:00:00Z") });
    expect(list[0]).toEqual({ level: 1, on: "2025-09-15" });
  });

  it.each(ZONES)("keeps the calendar day over the end of summer time (%s)", (timeZone) => {
    const list = reminders({ dueOn: "2025-10-20", timeZone, calendar: "none", ...at("2025-10-19T00:00:00Z") });
    expect(list[0]).toEqual({ level: 1, on: "2025-10-27" });
  });

  it.each(ZONES)("does not depend on the hour at which it runs (%s)", (timeZone) => {
    for (let hour = 0; hour < 24; hour += 1) {
      const iso = \`2025-09-15T\${String(hour).padStart(2, "0")}:30:00Z\`;
      const list = reminders({ dueOn: "2025-09-01", timeZone, calendar: "none", ...at(iso) });
      expect(list.map((reminder) => reminder.level)).toEqual([2, 3]);
    }
  });
});
`;

const SCHEDULE = `import { type Clock, systemClock } from "./clock.js";
import { type HolidayCalendar, isHoliday } from "./holidays.js";

export interface Reminder {
  readonly level: 1 | 2 | 3;
  /** Local calendar day, YYYY-MM-DD. */
  readonly on: string;
}

export interface ScheduleOptions {
  readonly dueOn: string;
  readonly timeZone: string;
  readonly calendar: HolidayCalendar;
  readonly clock?: Clock;
}

/** Reminders 7, 21 and 35 days after the due date, moved to the next business day. */
export function reminders(options: ScheduleOptions): Reminder[] {
  const today = localDay((options.clock ?? systemClock).now(), options.timeZone);
  const result: Reminder[] = [];
  for (const [level, days] of [[1, 7], [2, 21], [3, 35]] as const) {
    let on = addDays(options.dueOn, days);
    while (isWeekend(on) || isHoliday(on, options.calendar)) on = addDays(on, 1);
    if (on >= today) result.push({ level, on });
  }
  return result;
}

/** Calendar arithmetic happens in UTC, where every day has 24 hours. */
function addDays(day: string, days: number): string {
  const date = new Date(\`\${day}T00:00:00Z\`);
  date.setUTCDate(date.getUTCDate() + days);
  return date.toISOString().slice(0, 10);
}

function isWeekend(day: string): boolean {
  return new Date(\`\${day}T00:00:00Z\`).getUTCDay() % 6 === 0;
}

function localDay(moment: Date, timeZone: string): string {
  return new Intl.DateTimeFormat("sv-SE", { timeZone }).format(moment);
}
`;

function loop(random, count, failing) {
  const lines = [];
  for (let i = 1; i <= count; i += 1) {
    const zone = ["UTC", "Europe/Dublin", "Europe/Berlin", "America/St_Johns"][i % 4];
    const hour = String(Math.floor((i * 24) / count) % 24).padStart(2, "0");
    lines.push(`run ${String(i).padStart(2)}  TZ=${zone.padEnd(16)} faketime=2025-10-02T${hour}:${random.int(10, 59)}  ${failing(zone, Number(hour)) ? "FAIL" : "ok  "}  ${(1.4 + random.next()).toFixed(2)}s`);
  }
  return `${lines.join("\n")}\n${lines.filter((line) => line.includes("FAIL")).length} of ${count} failed`;
}

/** The flaky test: found by varying clock and time zone, fixed at its cause. */
export function flaky({ run, ws, random }) {
  run.step(
    "While the migration needs some thought, the flaky test is small. What do the last failures on main have in common?",
    ["bash", { command: "gh run list --workflow ci --branch main --status failure --limit 12 --json databaseId,createdAt,displayTitle --jq '.[] | [.databaseId, .createdAt, .displayTitle] | @tsv'" },
      Array.from({ length: 12 }, (_, i) => `${18_204_411_903 - i * 7_341_127}\t2025-${i < 2 ? "10-0" + (2 - i) : "09-" + String(30 - i * 2).padStart(2, "0")}T${["23:12", "22:47", "23:31", "00:04", "23:55", "22:15", "23:40", "09:12", "23:08", "00:21", "22:58", "23:26"][i]}:${random.int(10, 59)}Z\t${random.pick(["Bump pino to 9.13.1", "Show the due date in the portal's list", "Retry webhooks with jitter", "Export DATEV in one file per month", "Drop the unused template editor", "Match payments by end-to-end reference"])}`).join("\n")],
    ["read_file", { path: "src/dunning/schedule.ts" }, ws.show("src/dunning/schedule.ts")],
    ["read_file", { path: "test/dunning/schedule.test.ts" }, ws.show("test/dunning/schedule.test.ts")],
  );
  run.step(
    "Eleven of twelve failed between 22:00 and 00:30 UTC. The test reads `Date.now()`, takes the UTC day, and the code parses `dueOn` in the machine's zone, walks by 24-hour steps and formats in the customer's zone: three different calendars. Let me make it fail on demand.",
    ["read_file", { path: "src/dunning/clock.ts" }, ws.show("src/dunning/clock.ts")],
    ["bash", { command: "for i in $(seq 1 48); do scripts/with-faketime.sh $i npx vitest run test/dunning/schedule.test.ts; done 2>&1 | scripts/tally.sh" },
      loop(random, 48, (zone, hour) => (zone === "Europe/Berlin" && hour >= 22) || (zone === "Europe/Dublin" && hour >= 23) || (zone === "America/St_Johns" && hour < 3))],
    ["bash", { command: "TZ=Europe/Berlin faketime '2025-10-02 22:41' npx vitest run test/dunning/schedule.test.ts" },
      vitest(random, { only: "dunning/schedule", failures: { "test/dunning/schedule.test.ts > leaves out reminders that are already in the past": "AssertionError: expected [ 1, 2, 3 ] to deeply equal [ 2, 3 ]\n\n- Expected\n+ Received\n\n  [\n+   1,\n    2,\n    3,\n  ]\n\n ❯ test/dunning/schedule.test.ts:14:53\n     12|     const dueOn = new Date(Date.now() - 14 * 86_400_000).toISOString().slice(0, 10);\n     13|     const list = reminders({ dueOn, timeZone: \"Europe/Dublin\", calendar: \"none\" });\n     14|     expect(list.map((reminder) => reminder.level)).toEqual([2, 3]);" } })],
  );
  run.say(
    "It is not only the test. `localDay` formats a moment that was midnight in the *server's* zone: for a customer in St. John's every reminder comes out one day early, and over the end of summer time \"7 × 24 hours\" is not seven days. So the flake is a real bug that shows up as a flake. The fix is to compute with calendar days as strings and to compare with *today in the customer's zone*. The tests get a `FakeClock`, as CONTRIBUTING.md asks (no wall clock in tests).",
  );
  const holidays = ws.read("src/dunning/holidays.ts");
  const isHoliday = holidays.slice(holidays.indexOf("export function isHoliday"));
  const isHolidayAfter = `/** \`day\` is a calendar day, YYYY-MM-DD. */\nexport function isHoliday(day: string, calendar: HolidayCalendar): boolean {\n  return calendar !== "none" && FIXED[calendar].includes(day.slice(5));\n}\n`;
  run.step(
    "",
    ["write_file", { path: "src/dunning/schedule.ts", content: SCHEDULE }, ws.write("src/dunning/schedule.ts", SCHEDULE)],
    ["edit_file", { path: "src/dunning/holidays.ts", old: isHoliday, new: isHolidayAfter }, ws.edit("src/dunning/holidays.ts", isHoliday, isHolidayAfter)],
    ["write_file", { path: "test/dunning/schedule.test.ts", content: TEST }, ws.write("test/dunning/schedule.test.ts", TEST)],
  );
  const extra = { "test/dunning/schedule.test.ts": ["Europe/Dublin", "Europe/Berlin", "America/St_Johns", "Pacific/Auckland", "UTC"].flatMap((zone) => [`keeps the calendar day over the end of summer time (${zone})`, `does not depend on the hour at which it runs (${zone})`]) };
  run.step(
    "",
    ["bash", { command: "for i in $(seq 1 48); do scripts/with-faketime.sh $i npx vitest run test/dunning/schedule.test.ts; done 2>&1 | scripts/tally.sh" }, loop(random, 48, () => false)],
    ["run_tests", { filter: "dunning" }, vitest(random, { only: "dunning", extra, failures: { "test/dunning/holidays.test.ts > knows the fixed holidays of IE": "TypeError: day.slice is not a function\n ❯ isHoliday src/dunning/holidays.ts:11:59\n ❯ test/dunning/holidays.test.ts:7:12\n      5|   it(\"knows the fixed holidays of IE\", () => {\n      6|     for (const day of [\"2025-01-01\", \"2025-03-17\", \"2025-12-26\"]) {\n      7|       expect(isHoliday(new Date(`${day}T00:00:00`), \"IE\")).toBe(true);" } })],
  );
  run.step(
    "48 of 48 now. One caller left: the holiday test hands over a Date. It should hand over a day, like the code.",
    ["bash", { command: "sed -i 's/isHoliday(new Date(`${day}T00:00:00`), /isHoliday(day, /' test/dunning/holidays.test.ts && grep -rn 'isHoliday(' src test" },
      "src/dunning/holidays.ts:10:export function isHoliday(day: string, calendar: HolidayCalendar): boolean {\nsrc/dunning/schedule.ts:23:    while (isWeekend(on) || isHoliday(on, options.calendar)) on = addDays(on, 1);\ntest/dunning/holidays.test.ts:7:      expect(isHoliday(day, \"IE\")).toBe(true);\ntest/dunning/holidays.test.ts:13:      expect(isHoliday(day, \"DE-BE\")).toBe(true);\ntest/dunning/holidays.test.ts:18:    expect(isHoliday(\"2025-12-25\", \"none\")).toBe(false);"],
    ["run_tests", { filter: "dunning" }, vitest(random, { only: "dunning", extra })],
  );
  run.step(
    "",
    ["bash", { command: "git diff" }, ws.diff()],
    ["bash", { command: "git commit -qam 'Send reminders on the day that the customer sees on the calendar' && git log -1 --format='%h %s'" }, "e03d8a4 Send reminders on the day that the customer sees on the calendar"],
  );
  ws.commit();
  run.user("Nice find. Does that mean customers in Newfoundland got reminders a day early until now? Support will ask.");
  run.step(
    "Checking instead of guessing, on the staging copy:",
    ["sql", { database: "postgres://readonly@localhost:5433/invoicing", query: "SELECT c.time_zone, count(*) AS reminders, count(*) FILTER (WHERE r.sent_on < r.planned_on) AS early FROM dunning_reminders r JOIN customers c USING (customer_id) WHERE r.sent_on >= '2025-01-01' GROUP BY 1 ORDER BY 3 DESC LIMIT 12" },
      " time_zone          | reminders | early \n--------------------+-----------+-------\n America/St_Johns   |        41 |    41 \n Atlantic/Azores    |       118 |   118 \n Atlantic/Reykjavik |        96 |    54 \n Europe/Lisbon      |      2204 |   911 \n Europe/Dublin      |     31877 |     0 \n Europe/Berlin      |     58120 |     0 \n Europe/Amsterdam   |     22493 |     0 \n Europe/Paris       |      9052 |     0 \n Europe/Vienna      |      4418 |     0 \n Europe/Helsinki    |      1270 |     0 \n(10 rows)"],
  );
  run.say("Yes: 1,124 reminders this year went out a day early, all to customers west of the server's zone (the jobs run in Europe/Dublin): St. John's 41, Azores 118, Reykjavik 54, Lisbon 911. Nobody east of it was affected. No fee depends on the first reminder's day, so it is a courtesy note rather than a correction.");
}
