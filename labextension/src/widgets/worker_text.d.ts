declare module "worker-text:layout" {
  const text: string;
  export default text;
}
