/** One release of a Keep a Changelog page. */
export interface Release {
  /** As written; `Unreleased` for what is not out yet. */
  version: string
  date: string | null
  /** Items by section name. */
  sections: Record<string, string[]>
}

const RELEASE = /^##\s+\[?([^\]\s]+)\]?(?:\([^)]*\))?(?:\s+-\s+(\S+))?/
const SECTION = /^###\s+(.+?)\s*$/
const BULLET = /^[-*+]\s+(.*)$/

/**
 * Reads a changelog: `## [x.y.z] - date`, `### Section`, `- item`. An item's wrapped and indented lines are joined with single
 * blanks. Text outside items is introduction, and left out.
 */
export function parseChangelog(text: string): Release[] {
  const releases: Release[] = []
  let items: string[] | null = null
  let open = false
  for (const line of text.split(/\r?\n/)) {
    const release = RELEASE.exec(line)
    const section = SECTION.exec(line)
    const bullet = BULLET.exec(line)
    const current = releases[releases.length - 1]
    if (release !== null) {
      releases.push({ version: release[1] as string, date: release[2] ?? null, sections: {} })
      items = null
    } else if (section !== null && current !== undefined) {
      items = current.sections[section[1] as string] ??= []
    } else if (bullet !== null && items !== null) {
      items.push((bullet[1] as string).trim())
    } else if (open && items !== null && items.length > 0 && /^\s+\S/.test(line)) {
      items.push(`${items.pop() ?? ''} ${line.trim()}`)
      continue
    }
    open = bullet !== null
  }
  return releases
}
