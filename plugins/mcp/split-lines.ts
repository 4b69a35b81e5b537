const LINE_FEED = 0x0a
const LONGEST_LINE = 4 * 1024 * 1024

/**
 * Cuts a byte stream into lines without their ends (LF or CRLF), blank ones left out. A line of more than 4 MiB is given as null
 * once, and its bytes are not kept. Cutting bytes instead of text keeps characters whole that arrive in two chunks.
 */
export function splitLines(onLine: (line: Buffer | null) => void): (chunk: Buffer) => void {
  let parts: Buffer[] = []
  let length = 0
  const add = (part: Buffer) => {
    length += part.length
    if (length <= LONGEST_LINE) parts.push(part)
    else parts = []
  }
  return (chunk) => {
    let start = 0
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      add(chunk.subarray(start, end))
      const line = length > LONGEST_LINE ? null : Buffer.concat(parts)
      parts = []
      length = 0
      start = end + 1
      if (line === null || !isBlank(line)) onLine(line)
    }
    if (start < chunk.length) add(chunk.subarray(start))
  }
}

/** JSON.parse takes the CR of a CRLF for white space, so only a line of nothing else must be told apart. */
const isBlank = (line: Buffer) => line.length === 0 || (line.length === 1 && line[0] === 0x0d)
