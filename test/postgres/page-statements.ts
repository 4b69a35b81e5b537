import { readPage } from '../docs/commands.js'

/** The SQL of the chapter on PostgreSQL in docs/operations.md: its blocks in order, each as statements. */
export function pageStatements(): string[][] {
  const [, chapter = ''] = /\n## PostgreSQL\n([\s\S]*?)\n## /.exec(readPage('docs/operations.md')) ?? []
  return [...chapter.matchAll(/^```sql\n([\s\S]*?)^```$/gm)].map(([, text]) => text!.trim().split(/(?<=;)\n/))
}
