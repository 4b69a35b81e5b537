/**
 * Lists the files of the repository that `.dockerignore` leaves in the context of an image. It supports the syntax that
 * the project's file uses: names of files and folders, `*` within a name, and `!` for exceptions; the last matching
 * line decides. Throws Error for anything else.
 */
export function listContext(files: readonly string[], dockerignore: string): string[] {
  const rules = dockerignore
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const isKept = line.startsWith('!')
      const pattern = isKept ? line.slice(1) : line
      if (!/^[\w.*/-]+$/.test(pattern) || pattern.includes('**')) throw new Error(`.dockerignore: ${line}`)
      const source = pattern.replaceAll('.', '\\.').replaceAll('*', '[^/]*')
      return { isKept, fits: new RegExp(`^${source}(/|$)`) }
    })
  return files.filter((file) => rules.findLast(({ fits }) => fits.test(file))?.isKept ?? true)
}
