import { posix } from 'node:path'

/** The pages whose headings (`### D21. …`) define the numbers that comments cite. */
export const CITED_PAGES = ['docs/decisions.md', 'docs/tool-contract.md', 'docs/pce-facts.md'] as const

const HEADING = /^### ([DPST]\d+)\. /gm
const COMMENT = /^\s*(?:\/\*|\*|\/\/).*|\s\/\/ .*|\/\*\*.*?\*\//
const LINK = /\]\(([^)#:\s]+)(?:#[^)]*)?\)/g
const TEST_PATH = /\btest\/[\w./-]*\w\/?/g
const CITATION = /(?<![\w.+/-])[DPST]1?\d{1,2}(?![\w-])/g

/** Collects the numbers that the pages define. Throws Error if one is defined twice. */
export function definedNumbers(pages: readonly string[]): Set<string> {
  const numbers = pages.flatMap((page) => [...page.matchAll(HEADING)].map(([, number]) => number!))
  const twice = numbers.filter((number, at) => numbers.indexOf(number) !== at)
  if (twice.length > 0) throw new Error(`defined twice: ${twice.join(', ')}`)
  return new Set(numbers)
}

/**
 * Finds cited numbers that no page defines, in the form `path:line: number`. In code, only comments are searched; in
 * Markdown, every line.
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

/**
 * Finds relative links in Markdown pages that lead nowhere, and paths below test/ that do not exist, in the form `page:
 * target`.
 *
 * @param files texts by path; only pages are searched.
 * @param exists tells whether a path below the root exists.
 */
export function findBrokenLinks(files: ReadonlyMap<string, string>, exists: (path: string) => boolean): string[] {
  return [...files].flatMap(([page, text]) => {
    if (!page.endsWith('.md')) return []
    const links = [...text.matchAll(LINK)].map(([, target]) => posix.join(posix.dirname(page), target!))
    const tests = [...text.matchAll(TEST_PATH)].map(([path]) => path)
    return [...links, ...tests].filter((target) => !exists(target)).map((target) => `${page}: ${target}`)
  })
}
