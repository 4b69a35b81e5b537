/** Pages whose headings (`### D21. …`) define what comments cite. */
export const CITED_PAGES = ['docs/decisions.md', 'docs/tool-contract.md', 'docs/pce-facts.md'] as const

const HEADING = /^### ([DPST]\d+)\. /gm
const COMMENT = /^\s*(?:\/\*|\*|\/\/).*|\s\/\/ .*|\/\*\*.*?\*\//
const CITATION = /(?<![\w.+/-])[DPST]\d{1,2}(?![\w-])/g

/** The numbers that the pages define, each once. Throws Error for one that is defined twice. */
export function definedNumbers(pages: readonly string[]): Set<string> {
  const numbers = pages.flatMap((page) => [...page.matchAll(HEADING)].map(([, number]) => number!))
  const twice = numbers.filter((number, at) => numbers.indexOf(number) !== at)
  if (twice.length > 0) throw new Error(`defined twice: ${twice.join(', ')}`)
  return new Set(numbers)
}

/**
 * Numbers that nothing defines, as `path:line: number`. In code only comments count, in Markdown every line.
 *
 * @param files texts by path.
 */
export function findDangling(files: ReadonlyMap<string, string>, defined: ReadonlySet<string>): string[] {
  const dangling: string[] = []
  for (const [path, text] of files) {
    const isProse = path.endsWith('.md')
    for (const [at, line] of text.split('\n').entries()) {
      const prose = isProse ? line : (COMMENT.exec(line)?.[0] ?? '')
      for (const [number] of prose.matchAll(CITATION)) {
        if (!defined.has(number)) dangling.push(`${path}:${at + 1}: ${number}`)
      }
    }
  }
  return dangling
}
