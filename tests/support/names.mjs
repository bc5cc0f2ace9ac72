/** The names that the engine's tables have, as the build wrote them for the package. */

const { OPTIONS } = await import("../../pkg/dist/generated/options.js");

const namesOf = (option) => OPTIONS.find(({ path }) => path === option).names;

export const formats = namesOf("format");
export const presets = namesOf("preset");
