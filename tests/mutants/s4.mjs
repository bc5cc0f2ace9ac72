export const s4 = [];
