const LONGEST = 128

/** What a client calls itself, for the audit log: short, on one line, whatever it sent. */
export const cleanClient = (client: string): string =>
  client
    .slice(0, LONGEST)
    .replace(/\p{C}+/gu, ' ')
    .trim()
