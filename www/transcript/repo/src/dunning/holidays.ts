export type HolidayCalendar = "IE" | "DE-BE" | "NL" | "none";

const FIXED: Record<Exclude<HolidayCalendar, "none">, readonly string[]> = {
  IE: ["01-01", "02-03", "03-17", "05-05", "06-02", "08-04", "10-27", "12-25", "12-26"],
  "DE-BE": ["01-01", "03-08", "05-01", "10-03", "12-25", "12-26"],
  NL: ["01-01", "04-26", "05-05", "12-25", "12-26"],
};

export function isHoliday(day: Date, calendar: HolidayCalendar): boolean {
  if (calendar === "none") return false;
  const key = `${String(day.getMonth() + 1).padStart(2, "0")}-${String(day.getDate()).padStart(2, "0")}`;
  return FIXED[calendar].includes(key);
}
