export let count = 0;
export function bump() { count++; }
export default "counter";
