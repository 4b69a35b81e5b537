const LONGEST_SHOWN = 300
/** Control characters, and those that turn the direction of the text around them or take no room. */
// eslint-disable-next-line no-control-regex -- control characters are what is looked for
const DECEIVING = /[\u0000-\u001f\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]/g

/** Text from elsewhere as the page shows it: nobody can make a name look like another one. It still has to be escaped. */
export function showText(value: unknown): string {
  const text = String(value).replace(DECEIVING, '\uFFFD')
  return text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)}…` : text
}
