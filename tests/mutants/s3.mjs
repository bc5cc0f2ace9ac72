export const s3 = [];
