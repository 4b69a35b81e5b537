/** What a thread loads to run the tools of heavy-tools.ts. */
import { createTaskRunner } from '../../plugins/dispatcher/heavy/run-task.js'
import { heavyTools } from './heavy-tools.js'

export default createTaskRunner(heavyTools)
