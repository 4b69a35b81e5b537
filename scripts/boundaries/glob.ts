/**
 * Matches a path against a glob of the table of rooms: `*` is one segment or a part of it, `**` anything, `{name}` one segment that
 * is captured. The captured segments, or null where it does not match.
 */
export function matchGlob(glob: string, path: string): Record<string, string> | null {
  const source = glob.replace(/\*\*|\*|\{(\w+)\}|[^*{}]+/g, (token, name: string | undefined) => {
    if (token === '**') return '.*'
    if (token === '*') return '[^/]*'
    return name === undefined ? token.replace(/[.+?^$()|[\]\\]/g, '\\$&') : `(?<${name}>[^/]+)`
  })
  const match = new RegExp(`^${source}$`).exec(path)
  return match === null ? null : { ...match.groups }
}

/** Puts captured segments into the `{name}` places of a glob or a text. */
export function fillGlob(text: string, captured: Readonly<Record<string, string>>): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => captured[name] ?? whole)
}
