/** Texts as small integers. Code 0 is "missing". */
export interface Dictionary {
  /** The text's code; blank around it does not count, and an empty text is missing. */
  readonly code: (text: string | null | undefined) => number
  readonly value: (code: number) => string | null
}

export function createDictionary(): Dictionary {
  const values: (string | null)[] = [null]
  const codes = new Map<string, number>([['', 0]])
  return {
    code(text) {
      if (text === null || text === undefined) return 0
      const known = codes.get(text)
      if (known !== undefined) return known
      const trimmed = text.trim()
      const code = codes.get(trimmed) ?? values.push(trimmed) - 1
      codes.set(trimmed, code)
      codes.set(text, code)
      return code
    },
    value: (code) => values[code] ?? null,
  }
}
