import { readStateFile } from '../../config/index.js'
import type { DatabaseConfig } from '../../schemas/config.js'

/** A database as the programs read it from their environment. */
export const databaseOf = (url: string, more: Record<string, string> = {}): DatabaseConfig =>
  readStateFile({ MCP_STATE_URL: url, ...more }).database!
