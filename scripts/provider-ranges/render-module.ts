import { format } from 'prettier'
import type { ProviderRanges } from '../../domain/traffic/providers/provider-table.js'

/** The TypeScript module that holds the table, formatted as the project is. */
export function renderModule(table: readonly ProviderRanges[]): Promise<string> {
  const text = `// Written by \`npm run providers\` from the sources it names; correct those, or scripts/provider-ranges, not this file.
import type { ProviderRanges } from './provider-table.js'

export const PROVIDER_RANGES: readonly ProviderRanges[] = ${JSON.stringify(table)}
`
  return format(text, { parser: 'typescript', singleQuote: true, semi: false, printWidth: 120, trailingComma: 'all' })
}
