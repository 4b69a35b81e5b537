/** A fenced block of shell commands on a page. */
export interface CommandBlock {
  /**
   * The key of the block: its page and the heading above it, as in `README.md#try-it`. The key of a second block under
   * the same heading ends in `:2`.
   */
  key: string
  /** The text between the fences, exactly as a reader pastes it. */
  text: string
  /** The reason why no test runs the block, from the comment above it. */
  notRun?: string
}

const SHELLS = new Set(['sh', 'bash', 'shell', 'console', 'zsh'])
const NPM_SCRIPT = /`npm (?:run (?:--silent )?([\w:-]+)|(test)\b)/g

/** Lists the shell blocks of a page in order. A comment `<!-- not run: reason -->` may be directly above a block. */
export function findCommands(path: string, page: string): CommandBlock[] {
  const found: CommandBlock[] = []
  const times = new Map<string, number>()
  let heading = ''
  let comment = ''
  let open: { fence: string; shell: boolean; lines: string[] } | undefined
  for (const line of page.split('\n')) {
    if (open !== undefined) {
      if (line.trim() !== open.fence) {
        open.lines.push(line)
        continue
      }
      if (open.shell) {
        const time = (times.get(heading) ?? 0) + 1
        times.set(heading, time)
        const [, notRun] = /^<!-- not run: (.+) -->$/.exec(comment) ?? []
        const key = `${path}#${heading}${time === 1 ? '' : `:${time}`}`
        found.push({ key, text: open.lines.join('\n'), ...(notRun !== undefined && { notRun }) })
      }
      open = undefined
      comment = ''
      continue
    }
    const [, fence, language] = /^\s*(```+)\s*([\w-]*)/.exec(line) ?? []
    const [, title] = /^#+ (.+)$/.exec(line) ?? []
    if (fence !== undefined) open = { fence, shell: SHELLS.has(language!), lines: [] }
    else if (title !== undefined) heading = anchorOf(title)
    else if (line.trim() !== '') comment = line.trim()
  }
  return found
}

/**
 * Finds problems with the commands of all pages, as one line each: a block without a reason whose key (such as
 * `'README.md#try-it'`) no test contains, a key in a test without a block, and an npm script that does not exist.
 *
 * @param files texts of pages and tests, by path.
 */
export function findUntestedCommands(files: ReadonlyMap<string, string>, scripts: ReadonlySet<string>): string[] {
  const pages = [...files].filter(([path]) => path.endsWith('.md'))
  const blocks = pages.flatMap(([path, text]) => findCommands(path, text))
  const named = new Map<string, string>()
  for (const [path, text] of files) {
    if (!path.startsWith('test/') || !path.endsWith('.ts')) continue
    for (const [, key] of text.matchAll(/'([\w./@-]+\.md#[\w-]*(?::\d+)?)'/g)) named.set(key!, path)
  }
  const known = new Set(blocks.map(({ key }) => key))
  return [
    ...blocks
      .filter(({ key, notRun }) => notRun === undefined && !named.has(key))
      .map(
        ({ key }) =>
          `${key}: no test runs this block. Name '${key}' in one that does, or write <!-- not run: why --> above it`,
      ),
    ...blocks
      .filter(({ key, notRun }) => notRun !== undefined && named.has(key))
      .map(({ key }) => `${key}: says that it is not run, but ${named.get(key)} runs it`),
    ...[...named].filter(([key]) => !known.has(key)).map(([key, path]) => `${path}: there is no block '${key}'`),
    ...pages.flatMap(([path, text]) =>
      [...text.matchAll(NPM_SCRIPT)]
        .map(([, script, test]) => script ?? test!)
        .filter((script) => !scripts.has(script))
        .map((script) => `${path}: package.json has no script '${script}'`),
    ),
  ]
}

/** Returns the anchor that GitHub generates for a heading. */
export function anchorOf(title: string): string {
  const plain = title.replaceAll(/[`*]|\[|\]\([^)]*\)/g, '')
  return plain
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-')
}
