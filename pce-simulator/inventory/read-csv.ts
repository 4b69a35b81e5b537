import { invalidInput } from '../refusal.js'

/** The records of a CSV text, header and all, as RFC 4180 has them; empty lines are skipped. 406 for a quote that never ends. */
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
