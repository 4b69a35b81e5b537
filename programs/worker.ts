/** The module that worker threads load in order to run heavy tools (D61). */
import { createTaskRunner } from '../plugins/dispatcher/heavy/run-task.js'
import { catalogue as tools } from '../tools/catalogue/index.js'

export default createTaskRunner(tools)
