import { invalidInput } from '../refusal.js'

/**
 * Parses a CSV text (RFC 4180) into records, including the header. Empty lines are skipped. Throws 406 for a quote that
 * is never closed.
 */
export function readCsv(text: string): string[][] {
  const records: string[][] = []
  let record: string[] = []
  let field = ''
  let quoted = false
  const endField = () => {
    record.push(field)
    field = ''
  }
  const endRecord = () => {
    endField()
    if (record.length > 1 || record[0] !== '') records.push(record)
    record = []
  }
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at]!
    if (quoted) {
      if (character !== '"') field += character
      else if (text[at + 1] === '"') field += text[(at += 1)]!
      else quoted = false
    } else if (character === '"' && field === '') quoted = true
    else if (character === ',') endField()
    else if (character === '\n') endRecord()
    else if (character !== '\r' || text[at + 1] !== '\n') field += character
  }
  if (quoted) throw invalidInput('The CSV text ends inside a quoted field')
  endRecord()
  return records
}
