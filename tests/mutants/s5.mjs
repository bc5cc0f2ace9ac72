export const s5 = [];
