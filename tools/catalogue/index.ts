import { tools } from '../index.js'
import { catalogueOf } from './catalogue-of.js'

/**
 * All tools of the server, sorted by name, as lists and offers need them. In a build, the entries are data and a tool's
 * code is loaded when it is first called (scripts/build.mjs).
 */
export const catalogue = catalogueOf(tools)
