/** What a thread loads to run the tools of heavy-tools.ts. */
import { createTaskRunner } from '../../plugins/dispatcher/heavy/run-task.js'
import { catalogueOf } from '../../tools/catalogue/catalogue-of.js'
import { heavyTools } from './heavy-tools.js'

export default createTaskRunner(catalogueOf(heavyTools))
