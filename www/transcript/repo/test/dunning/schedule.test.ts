import { describe, expect, it } from "vitest";
import { reminders } from "../../src/dunning/schedule.js";

describe("reminders", () => {
  it("sends three reminders after the due date", () => {
    const dueOn = new Date(Date.now() + 2 * 86_400_000).toISOString().slice(0, 10);
    const list = reminders({ dueOn, timeZone: "Europe/Dublin", calendar: "none" });
    expect(list.map((reminder) => reminder.level)).toEqual([1, 2, 3]);
  });

  it("leaves out reminders that are already in the past", () => {
    const dueOn = new Date(Date.now() - 14 * 86_400_000).toISOString().slice(0, 10);
    const list = reminders({ dueOn, timeZone: "Europe/Dublin", calendar: "none" });
    expect(list.map((reminder) => reminder.level)).toEqual([2, 3]);
  });

  it("moves a reminder off a weekend", () => {
    const dueOn = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10);
    for (const reminder of reminders({ dueOn, timeZone: "Europe/Dublin", calendar: "IE" })) {
      expect(new Date(`${reminder.on}T12:00:00Z`).getUTCDay() % 6).not.toBe(0);
    }
  });
});
