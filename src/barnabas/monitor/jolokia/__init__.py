"""MBeans over HTTP in Jolokia's form, for tools that read JMX."""
