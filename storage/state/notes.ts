import type { Notes } from '../../schemas/state.js'
import { checkText } from './check-text.js'
import type { Queries, Sql } from './run-queries.js'

/** Small facts about the file, in the file (schemas/state.ts). */
export function notes({ read, write }: Queries): Notes {
  return {
    get: (name) => read((sql) => readNote(sql, name)),
    set: (name, value) =>
      write((sql) => void sql.run('INSERT OR REPLACE INTO notes VALUES (?, ?)', checkText(name), checkText(value))),
    setOnce: (name, value) =>
      write((sql) => {
        sql.run('INSERT OR IGNORE INTO notes VALUES (?, ?)', checkText(name), checkText(value))
        return readNote(sql, name)!
      }),
  }
}

/** Null where there is none. */
export const readNote = (sql: Sql, name: string): string | null =>
  sql.one<{ value: string }>('SELECT value FROM notes WHERE name = ?', checkText(name))?.value ?? null
