import { type Clock, systemClock } from "./clock.js";
import { type HolidayCalendar, isHoliday } from "./holidays.js";

const DAY = 24 * 60 * 60 * 1000;

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
  const clock = options.clock ?? systemClock;
  const due = new Date(`${options.dueOn}T00:00:00`);
  const result: Reminder[] = [];
  for (const [level, days] of [[1, 7], [2, 21], [3, 35]] as const) {
    let day = new Date(due.getTime() + days * DAY);
    while (isWeekend(day) || isHoliday(day, options.calendar)) day = new Date(day.getTime() + DAY);
    if (day.getTime() < clock.now().getTime()) continue;
    result.push({ level, on: localDay(day, options.timeZone) });
  }
  return result;
}

function isWeekend(day: Date): boolean {
  return day.getDay() === 0 || day.getDay() === 6;
}

function localDay(day: Date, timeZone: string): string {
  return new Intl.DateTimeFormat("sv-SE", { timeZone }).format(day);
}
